"""The SageMaker endpoint that speaks: model, configuration, endpoint, and how it scales."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as scaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from deploy.aws.base import weights_prefix
from deploy.aws.environments import environment as variables
from deploy.aws.settings import Deployment, has_gpu

VARIANT = "all"
MODEL_DIR = "/opt/ml/model"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"
SCALE_IN_MINUTES = 15
DOWNLOAD_S = 600


class Endpoint(Construct):
    """`upstream` is the gateway's FIRSTWORD_UPSTREAM, `arn` what may be invoked."""

    def __init__(
        self, scope: Construct, made: Deployment, weights: s3.IBucket, image: ecr.IRepository
    ) -> None:
        super().__init__(scope, "Endpoint")
        stack = cdk.Stack.of(self)
        self.name = f"{made.name}-tts"
        self.upstream = f"sagemaker://{self.name}?region={stack.region}"
        self.arn = stack.format_arn(
            service="sagemaker", resource="endpoint", resource_name=self.name
        )
        role = self._role(made, weights, image)
        model = sagemaker.CfnModel(
            self,
            "Model",
            execution_role_arn=role.role_arn,
            enable_network_isolation=True,  # it needs nothing of the network
            primary_container=self._container(made, weights, image),
        )
        # SageMaker looks at once at what the role may do.
        model.node.add_dependency(role.node.find_child("DefaultPolicy"))
        configuration = sagemaker.CfnEndpointConfig(
            self,
            "Configuration",
            production_variants=[self._variant(made, model.attr_model_name)],
            metrics_config=sagemaker.CfnEndpointConfig.MetricsConfigProperty(
                enable_detailed_observability=True
            ),
        )
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Endpoint",
            endpoint_name=self.name,
            endpoint_config_name=configuration.attr_endpoint_config_name,
            retain_all_variant_properties=True,  # a new version begins with as many instances
        )
        self._scale(made)

    def _role(self, made: Deployment, weights: s3.IBucket, image: ecr.IRepository) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
            description="the endpoint: its image, its weights, its logs",
        )
        image.grant_pull(role)
        if made.weights == "bucket":
            place = f"{weights_prefix(made.engine)}*"
            files = weights.arn_for_objects(place)
            role.add_to_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=[files]))
            role.add_to_policy(
                iam.PolicyStatement(
                    actions=["s3:ListBucket"],
                    resources=[weights.bucket_arn],
                    conditions={"StringLike": {"s3:prefix": place}},
                )
            )
        logs = cdk.Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"/aws/sagemaker/Endpoints/{self.name}*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=[
                    "logs:CreateLogGroup",
                    "logs:CreateLogStream",
                    "logs:DescribeLogStreams",
                    "logs:PutLogEvents",
                ],
                resources=[logs],
            )
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["cloudwatch:PutMetricData"],  # knows no resources, but namespaces
                resources=["*"],
                conditions={
                    "StringEquals": {
                        "cloudwatch:namespace": ["AWS/SageMaker", "/aws/sagemaker/Endpoints"]
                    }
                },
            )
        )
        return role

    def _container(
        self, made: Deployment, weights: s3.IBucket, image: ecr.IRepository
    ) -> sagemaker.CfnModel.ContainerDefinitionProperty:
        environment = {
            "FIRSTWORD_INFERENCE_HOST": "0.0.0.0",  # noqa: S104 - a container's only address
            "FIRSTWORD_INFERENCE_ENGINE": made.engine,
        }
        if has_gpu(made.endpoint_instance):
            # Else a driver that does not fit would leave everything to the CPU without a word.
            environment["FIRSTWORD_INFERENCE_DEVICE"] = "cuda"
        environment |= variables("inference", made.inference_env)
        source = None
        if made.weights == "bucket":
            environment["FIRSTWORD_MODEL_DIR"] = MODEL_DIR
            source = sagemaker.CfnModel.ModelDataSourceProperty(
                s3_data_source=sagemaker.CfnModel.S3DataSourceProperty(
                    compression_type="None",
                    s3_data_type="S3Prefix",
                    s3_uri=weights.s3_url_for_object(weights_prefix(made.engine)),
                )
            )
        return sagemaker.CfnModel.ContainerDefinitionProperty(
            image=image.repository_uri_for_tag(made.image_tag),
            environment=environment,
            model_data_source=source,
        )

    def _variant(
        self, made: Deployment, model: str
    ) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
        return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
            variant_name=VARIANT,
            model_name=model,
            instance_type=made.endpoint_instance,
            initial_instance_count=made.min_instances,
            initial_variant_weight=1,
            inference_ami_version=made.endpoint_ami or None,
            container_startup_health_check_timeout_in_seconds=made.startup_s,
            model_data_download_timeout_in_seconds=(
                DOWNLOAD_S if made.weights == "bucket" else None
            ),
            routing_config=sagemaker.CfnEndpointConfig.RoutingConfigProperty(
                routing_strategy="LEAST_OUTSTANDING_REQUESTS"
            ),
        )

    def _scale(self, made: Deployment) -> None:
        """Out at once, by open streams; in slowly, and apart from it.

        A policy that follows a target also scales in, within minutes: streams would be cut in every
        short lull. So it only adds, and another takes away, after a quarter of an hour.
        """
        target = scaling.CfnScalableTarget(
            self,
            "Instances",
            min_capacity=made.min_instances,
            max_capacity=made.max_instances,
            resource_id=f"endpoint/{self.name}/variant/{VARIANT}",
            scalable_dimension=DIMENSION,
            service_namespace="sagemaker",
        )
        target.node.add_dependency(self.endpoint)
        tracking = scaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty
        metric = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
        scaling.CfnScalingPolicy(
            self,
            "Out",
            policy_name=f"{self.name}-out",
            policy_type="TargetTrackingScaling",
            scaling_target_id=target.ref,
            target_tracking_scaling_policy_configuration=tracking(
                target_value=made.target_sessions,
                disable_scale_in=True,
                scale_out_cooldown=60,
                predefined_metric_specification=(
                    scaling.CfnScalingPolicy.PredefinedMetricSpecificationProperty(
                        predefined_metric_type=metric
                    )
                ),
            ),
        )
        fewer = scaling.CfnScalingPolicy(
            self,
            "In",
            policy_name=f"{self.name}-in",
            policy_type="StepScaling",
            scaling_target_id=target.ref,
            step_scaling_policy_configuration=(
                scaling.CfnScalingPolicy.StepScalingPolicyConfigurationProperty(
                    adjustment_type="ChangeInCapacity",
                    cooldown=600,
                    metric_aggregation_type="Average",
                    step_adjustments=[
                        scaling.CfnScalingPolicy.StepAdjustmentProperty(
                            metric_interval_upper_bound=0, scaling_adjustment=-1
                        )
                    ],
                )
            ),
        )
        cloudwatch.CfnAlarm(
            self,
            "Quiet",
            alarm_description="fewer open streams per instance than one instance fewer carries",
            namespace="AWS/SageMaker",
            metric_name="ConcurrentRequestsPerModel",
            dimensions=[
                cloudwatch.CfnAlarm.DimensionProperty(name="EndpointName", value=self.name),
                cloudwatch.CfnAlarm.DimensionProperty(name="VariantName", value=VARIANT),
            ],
            statistic="Average",
            period=60,
            evaluation_periods=SCALE_IN_MINUTES,
            threshold=made.scale_in_sessions,
            comparison_operator="LessThanThreshold",
            treat_missing_data="breaching",  # nobody speaks: nothing is measured
            alarm_actions=[fewer.ref],
        )
